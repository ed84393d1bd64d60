"""Record batches as bytes: headers, checks, cursors, records, and indexes built from them."""
