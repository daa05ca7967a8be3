"""Result formats: scores of a study in the formats of public result collections."""
