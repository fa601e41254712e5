"""Who must talk in a collective, how many bytes cross which link, and what that costs in step time and money."""
