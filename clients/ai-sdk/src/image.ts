import type { ImageModelV4, ImageModelV4CallOptions, ImageModelV4Result } from '@ai-sdk/provider';
import { placeFiles, type Placed } from './media-files.ts';
import { putRatio, putSize } from './size.ts';
import { answerOf, bytesOf, count_fields, factsOf, outputsOf, resultsMax, type TaskModel } from './task.ts';

const is_mask = /mask/i;

/** An image model of the service: each call is a task. */
export class MedleyImageModel implements ImageModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.image';
  readonly modelId: string;
  readonly #model: TaskModel;

  constructor(model: TaskModel) {
    this.modelId = model.modelId;
    this.#model = model;
  }

  readonly maxImagesPerCall = (): Promise<number> => resultsMax(this.#model);

  get supportsFileInputs(): Promise<boolean> {
    return this.#takesFiles((name) => !is_mask.test(name));
  }

  get supportsMaskInputs(): Promise<boolean> {
    return this.#takesFiles((name) => is_mask.test(name));
  }

  async #takesFiles(isMeant: (name: string) => boolean): Promise<boolean> {
    const fields = await this.#model.fields();
    return [...fields.values()].some(({ name, media }) => media === 'image' && isMeant(name));
  }

  async doGenerate(options: ImageModelV4CallOptions): Promise<ImageModelV4Result> {
    const draft = await this.#model.draft(options);
    const { prompt, n, size, aspectRatio, seed, files = [], mask, abortSignal } = options;
    draft.put('prompt', prompt, ['prompt', 'text', 'description']);
    draft.put('n', n, count_fields, { harmless: [1] });
    putSize(draft, 'size', size, 'image');
    putRatio(draft, aspectRatio);
    draft.put('seed', seed, ['seed']);
    const placed: Placed[] = [];
    const kind = 'image';
    if (files.length > 0)
      placed.push(placeFiles(draft, 'files', files, { kind, isMeant: (name) => !is_mask.test(name) }));
    if (mask) placed.push(placeFiles(draft, 'mask', [mask], { kind, isMeant: (name) => is_mask.test(name) }));
    const finished = await this.#model.run(draft, placed, options);
    const { task, headers } = finished;
    const images: Uint8Array[] = [];
    for (const output of outputsOf(task, 'image')) images.push(await bytesOf(finished, output, abortSignal));
    const { outputs, ...facts } = factsOf(task);
    // `generateImage` keeps the list alone, since it may be made of several calls.
    const of_images = outputs.map((output) => ({ ...output, taskId: facts['taskId'], taskCost: facts['cost'] }));
    return {
      images,
      isRetryable: false, // a task that made no image was paid all the same
      warnings: draft.warnings,
      response: answerOf(task, headers),
      providerMetadata: { medley: { ...facts, images: of_images } },
    };
  }
}
