// Runs a folder with transformers.js: node transformers_js.mjs MODULES PARENT. PARENT has job.json;
// tokens and logits of each element type are written into results.json.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [modules, parent] = process.argv.slice(2);
const {
    AutoModel, AutoModelForCTC, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification, AutoModelForSpeechSeq2Seq, AutoProcessor, AutoTokenizer, RawImage, Tensor, env,
} = createRequire(join(modules, 'package.json'))('@huggingface/transformers');
env.allowRemoteModels = false;
env.localModelPath = parent;

const job = JSON.parse(readFileSync(join(parent, 'job.json'), 'utf8'));
const classes = {
    decoder: AutoModelForCausalLM,
    text: AutoModelForSequenceClassification,
    both: AutoModelForSeq2SeqLM,
    image: AutoModelForImageClassification,
    clip: AutoModel,
    speech: AutoModelForSpeechSeq2Seq,
    ctc: AutoModelForCTC,
};

async function inputs() {
    const { kind, folder } = job;
    const given = {};
    if (['decoder', 'text', 'both', 'clip'].includes(kind)) {
        const tokenizer = await AutoTokenizer.from_pretrained(folder);
        Object.assign(given, await tokenizer(job.texts, { padding: true }));
    }
    if (['image', 'clip'].includes(kind)) {
        const processor = await AutoProcessor.from_pretrained(folder);
        const image = new RawImage(Uint8ClampedArray.from(job.image), job.pixels, job.pixels, 3);
        const { pixel_values } = await (processor.image_processor ?? processor)(image);
        Object.assign(given, { pixel_values });
    }
    if (['speech', 'ctc'].includes(kind)) {
        const processor = await AutoProcessor.from_pretrained(folder);
        Object.assign(given, await processor(Float32Array.from(job.sound)));
    }
    return given;
}

async function run(dtype) {
    const { kind, folder, steps } = job;
    const model = await classes[kind].from_pretrained(folder, { dtype });
    const given = await inputs();
    let tokens = [];
    if (['decoder', 'both', 'speech'].includes(kind)) {
        const made = await model.generate({ ...given, do_sample: false, max_new_tokens: steps, min_new_tokens: steps });
        tokens = made.tolist().map((row) => row.slice(-steps).map(Number));
    }
    if (['both', 'speech'].includes(kind)) {
        const rows = Object.values(given)[0].dims[0];
        const starts = Array.from({ length: rows * 5 }, (_, at) => BigInt(5 + (at % 5)));
        given.decoder_input_ids = new Tensor('int64', BigInt64Array.from(starts), [rows, 5]);
    }
    const result = await model(given);
    let logits = (kind === 'clip' ? result.logits_per_image : result.logits).tolist();
    if (kind === 'decoder') {
        logits = logits.map((row) => row.at(-1));
    }
    await model.dispose();
    return { tokens, logits };
}

const results = {};
for (const dtype of job.dtypes) {
    try {
        results[dtype] = await run(dtype);
    } catch (error) {
        results[dtype] = { error: `${error}`.split('\n')[0].slice(0, 200) };
        console.error(error);
    }
}
writeFileSync(join(parent, 'results.json'), JSON.stringify(results));
