"""The reader of the operator's page: polls flows, and answers the page's questions."""
