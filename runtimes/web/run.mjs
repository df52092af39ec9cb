// Runs a model in onnxruntime-web: `node run.mjs MODEL FOLDER`, where `ORT_WEB` is its module.
//
// `FOLDER/inputs` has a line for each input: its name, element type, sizes separated by commas,
// and the file of its bytes. Outputs become `FOLDER/output-I`, and lines of `FOLDER/outputs`.

import { readFileSync, writeFileSync } from "node:fs";

const [model, folder] = process.argv.slice(2);
const ort = await import(process.env.ORT_WEB);
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int64: BigInt64Array,
  int32: Int32Array, int16: Int16Array, int8: Int8Array, uint64: BigUint64Array,
  uint32: Uint32Array, uint16: Uint16Array, uint8: Uint8Array, bool: Uint8Array,
};
const numbers = (sizes) => sizes.split(",").filter(Boolean).map(Number);

const feeds = {};
for (const line of readFileSync(`${folder}/inputs`, "utf8").split("\n").filter(Boolean)) {
  const [name, dtype, sizes, file] = line.split(" ");
  const bytes = new Uint8Array(readFileSync(`${folder}/${file}`)).buffer;
  feeds[name] = new ort.Tensor(dtype, new ARRAYS[dtype](bytes), numbers(sizes));
}
const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(model)));
const found = await session.run(feeds);
const lines = session.outputNames.map((name, i) => {
  const { data, dims, type } = found[name];
  writeFileSync(`${folder}/output-${i}`, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return `${type} ${dims.join(",")}\n`;
});
writeFileSync(`${folder}/outputs`, lines.join(""));
