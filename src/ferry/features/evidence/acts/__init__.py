"""Reports of drills and switches: pages, signatures, and the folder or object store that keeps them."""
