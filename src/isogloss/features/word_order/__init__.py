"""Word order: questions and texts in an order of subject, verb and object of choice."""
