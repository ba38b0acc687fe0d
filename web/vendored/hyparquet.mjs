// What reads a file of predictions without uploading it; loaded when a user drops one.
export { decompress as zstd } from "fzstd";
export { parquetMetadataAsync, parquetRead } from "hyparquet";
