"""Does selecting demonstrations by their flow (GradS) beat other selection?"""
