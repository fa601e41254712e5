"""The joint judgement: every placement the scheduler could choose x every policy x every flow the job needs."""
