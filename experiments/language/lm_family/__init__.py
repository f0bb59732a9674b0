"""Do small decoders that are trained here learn in context, at what depth, and after how many
steps?"""
