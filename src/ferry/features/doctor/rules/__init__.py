"""What a finding is, and how it is judged; pure."""
