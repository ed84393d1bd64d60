"""Commands on stores and on objects as files: storage, blocks."""
