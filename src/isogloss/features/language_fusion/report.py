"""Tables of reports about language fusion."""

from isogloss.reports.parts import summary_parts

PARTS = summary_parts(__file__)
"""Tables of this feature, by the section of a report that shows them."""
