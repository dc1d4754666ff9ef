"""A row that one block walks over, dealt out to many: each reduction over the row becomes a launch of its own."""
