"""What follows from the toy."""

SO_WHAT = {"toy": "Play with it and go."}
