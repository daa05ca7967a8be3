"""Gates over a frozen encoder's parameters, learned for each language: which parameters does it need?"""
