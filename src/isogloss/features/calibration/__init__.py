"""Calibration: does a model's confidence equal its accuracy in each language?"""
