"""Record batches as bytes: headers, checks, cursors, records, and indexes made from them."""
