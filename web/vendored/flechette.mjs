// What reads the tables of an event, which come as streams of Arrow.
export { tableFromIPC } from "@uwdata/flechette";
