"""Record batches as bytes: no socket, no client, no clock."""
