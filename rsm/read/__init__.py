"""Reading stored segments: what their indexes say of an offset or a time."""
