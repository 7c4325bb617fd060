"""What the operator's page, its reader and features share: questions, pages of lists, and what answers a question."""
