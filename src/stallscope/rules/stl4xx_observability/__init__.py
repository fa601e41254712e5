"""What nobody will be able to see when the job stalls."""
