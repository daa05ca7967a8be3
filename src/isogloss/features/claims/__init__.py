"""The claims of the four papers, with the rules that judge them on the rows of a report."""
