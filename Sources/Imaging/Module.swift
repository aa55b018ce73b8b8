enum ImagingModule {}
