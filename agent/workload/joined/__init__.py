"""A program's files read as one text: headers in their places, branches of ``#if`` that are not compiled left out."""
