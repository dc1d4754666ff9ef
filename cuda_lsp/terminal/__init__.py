"""What the commands share: opening files, showing lines and JSON, writing files, errors as exit codes."""
