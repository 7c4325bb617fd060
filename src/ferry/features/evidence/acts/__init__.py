"""Reports of drills and switches: their pages, signatures, and the folder or object store that keeps them."""
