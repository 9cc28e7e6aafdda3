"""scripts/benchmark exact: Figures 3, 4 and 5 of Encarnação, Sebastião and Roma, "Advantages and GPU Implementation
of High-Performance Indexed DNA Search based on Suffix Arrays"."""
