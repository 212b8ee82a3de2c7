# cmake -DCONFIGS=DIR -DOUTPUT=FILE -P embed_presets.cmake
# Writes every configs/**/*.yaml into a source file, so that the program works from anywhere.
file(GLOB_RECURSE presets RELATIVE ${CONFIGS} ${CONFIGS}/*.yaml)
list(SORT presets)
set(text "#include \"sevenfold/config/presets.h\"\n\nnamespace sevenfold::config {\n\n")
string(APPEND text "const std::vector<BuiltInPreset>& built_in_presets() {\n")
string(APPEND text "  static const std::vector<BuiltInPreset> presets = {\n")
foreach(preset IN LISTS presets)
  file(READ ${CONFIGS}/${preset} content)
  string(APPEND text "      {\"${preset}\", R\"yaml(${content})yaml\"},\n")
endforeach()
string(APPEND text "  };\n  return presets;\n}\n\n}  // namespace sevenfold::config\n")
file(WRITE ${OUTPUT} "${text}")
