"""Models: functions from arrays of weights and tokens to a Trace."""
