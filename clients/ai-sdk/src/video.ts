import type {
  Experimental_VideoModelV4 as VideoModelV4,
  Experimental_VideoModelV4CallOptions as VideoModelV4CallOptions,
  Experimental_VideoModelV4OperationStartResult as StartResult,
  Experimental_VideoModelV4OperationStatusResult as StatusResult,
  Experimental_VideoModelV4Result as VideoModelV4Result,
} from '@ai-sdk/provider';
import { MedleyError, TaskFailedError, type Medley, type SucceededTask, type Task } from '@medley/client';
import type { InputDraft } from './fields.ts';
import { placeFiles, type MediaFile, type Placed } from './media-files.ts';
import { isObject } from './namespaces.ts';
import { putRatio, putSize } from './size.ts';
import { answerOf, bytesOf, count_fields, factsOf, outputsOf, resultsMax, type TaskModel } from './task.ts';

type Videos = VideoModelV4Result['videos'];
type StatusOptions = Parameters<NonNullable<VideoModelV4['doStatus']>>[0];
type WebhookOptions = Parameters<NonNullable<VideoModelV4['handleWebhookOption']>>[0];

const is_last = /last|end|tail/i;
const is_reference = /ref/i;
const is_mask = /mask/i;

/** A video model of the service: each call is a task, which the AI SDK may also start and ask for by itself. */
export class MedleyVideoModel implements VideoModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'medley.video';
  readonly modelId: string;
  readonly #model: TaskModel;

  constructor(model: TaskModel) {
    this.modelId = model.modelId;
    this.#model = model;
  }

  readonly maxVideosPerCall = (): Promise<number> => resultsMax(this.#model);

  async doGenerate(options: VideoModelV4CallOptions): Promise<VideoModelV4Result> {
    const { draft, placed } = await this.#read(options);
    const finished = await this.#model.run(draft, placed, options);
    return {
      videos: await videosOf(finished, options.abortSignal),
      warnings: draft.warnings,
      response: answerOf(finished.task, finished.headers),
      providerMetadata: { medley: factsOf(finished.task) },
    };
  }

  /** The service sends webhooks, so the caller's receiver may be used. */
  async handleWebhookOption({ webhook }: WebhookOptions) {
    const { url, received } = await webhook();
    return { webhookUrl: url, received };
  }

  async doStart(options: VideoModelV4CallOptions & { webhookUrl?: string }): Promise<StartResult> {
    const { draft, placed } = await this.#read(options);
    const { task, headers } = await this.#model.start(draft, placed, options);
    return {
      operation: { taskId: task.id },
      warnings: draft.warnings,
      response: answerOf(task, headers),
      providerMetadata: { medley: { taskId: task.id } },
    };
  }

  async doStatus({ operation, abortSignal, headers }: StatusOptions): Promise<StatusResult> {
    const id = isObject(operation) ? operation['taskId'] : undefined;
    if (typeof id !== 'string') throw new MedleyError('The operation is none that doStart returned.');
    const { task, client, headers: answered } = await this.#model.get(id, { abortSignal, headers });
    const response = answerOf(task, answered);
    const providerMetadata = { medley: factsOf(task) };
    if (task.status === 'failed')
      return { status: 'error', error: new TaskFailedError(task).message, response, providerMetadata };
    if (!hasSucceeded(task)) return { status: 'pending', response, providerMetadata };
    const videos = await videosOf({ task, client }, abortSignal);
    return { status: 'completed', videos, warnings: [], response, providerMetadata };
  }

  async #read(options: VideoModelV4CallOptions): Promise<{ draft: InputDraft; placed: Placed[] }> {
    const draft = await this.#model.draft(options);
    const { prompt, n, aspectRatio, resolution, duration, fps, seed, generateAudio } = options;
    draft.put('prompt', prompt, ['prompt', 'text', 'description']);
    draft.put('n', n, count_fields, { harmless: [1] });
    putSize(draft, 'resolution', resolution, 'video');
    if (aspectRatio === 'adaptive')
      draft.put('aspectRatio', 'adaptive', ['aspect_ratio', 'ratio'], { harmless: ['adaptive'] });
    else putRatio(draft, aspectRatio);
    const lengths = ['duration', 'seconds', 'duration_seconds', 'video_length', 'length'];
    draft.put('duration', duration, lengths, { synonyms: [`${duration}s`] });
    draft.put('fps', fps, ['fps', 'frames_per_second', 'frame_rate', 'framerate']);
    draft.put('seed', seed, ['seed']);
    draft.put('generateAudio', generateAudio, ['generate_audio', 'with_audio', 'enable_audio', 'sound'], {
      harmless: [false],
    });
    return { draft, placed: placeFrames(draft, options) };
  }
}

/** The frames and references of a call in the fields of the model that mean them. */
function placeFrames(
  draft: InputDraft,
  { image, frameImages = [], inputReferences = [] }: VideoModelV4CallOptions,
): Placed[] {
  const framesOf = (type: 'first_frame' | 'last_frame') =>
    frameImages.filter(({ frameType }) => frameType === type).map((each) => each.image);
  const first = [...(image ? [image] : []), ...framesOf('first_frame')];
  const last = framesOf('last_frame');
  const kind = 'image';
  const isFirst = (name: string) => !is_last.test(name) && !is_reference.test(name) && !is_mask.test(name);
  const isVideo = ({ mediaType = '' }: MediaFile) => mediaType.startsWith('video');
  const videos = inputReferences.filter(isVideo);
  const images = inputReferences.filter((file) => !isVideo(file));
  const placed: Placed[] = [];
  if (first.length > 0) placed.push(placeFiles(draft, 'image', first, { kind, isMeant: isFirst }));
  if (last.length > 0)
    placed.push(placeFiles(draft, 'frameImages', last, { kind, isMeant: (name) => is_last.test(name) }));
  if (images.length > 0)
    placed.push(placeFiles(draft, 'inputReferences', images, { kind, isMeant: referenceOf(draft, placed) }));
  if (videos.length > 0)
    placed.push(
      placeFiles(draft, 'inputReferences', videos, { kind: 'video', isMeant: (name) => !is_mask.test(name) }),
    );
  return placed;
}

/** A field for references; without one, any field for images that has no file yet. */
function referenceOf(draft: InputDraft, placed: readonly Placed[]): (name: string) => boolean {
  const named = [...draft.fields.values()].some(({ name, media }) => media === 'image' && is_reference.test(name));
  const taken = new Set(placed.map(({ field }) => field));
  return named
    ? (name) => is_reference.test(name)
    : (name) => !taken.has(name) && !is_mask.test(name) && !is_last.test(name);
}

function hasSucceeded(task: Task): task is SucceededTask {
  return task.status === 'succeeded';
}

async function videosOf(
  finished: { task: SucceededTask; client: Medley },
  signal: AbortSignal | undefined,
): Promise<Videos> {
  const videos: Videos = [];
  for (const output of outputsOf(finished.task, 'video')) {
    videos.push({ type: 'binary', data: await bytesOf(finished, output, signal), mediaType: output.content_type });
  }
  return videos;
}
