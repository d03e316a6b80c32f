import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { requestedSize } from '../styles/media-parameters/size.ts';
import type { TaskStatus } from '../tasks/task.ts';
import type { VideoTask } from '../tasks/videos.ts';

const statuses: Record<TaskStatus, string> = {
  queued: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
};

/** Providers do not say how far a run is. */
const progress: Record<TaskStatus, number> = { queued: 0, running: 50, succeeded: 100, failed: 0 };

/** A task of a video model as the SDKs read a video. `keep_ms`: for how long its file is kept. */
export function videoView(task: VideoTask, keep_ms: number): object {
  const input: Json = JSON.parse(task.input);
  const request_input = isObject(input) ? input : {};
  const item = task.files[0]?.item;
  const measured = item?.width === undefined ? undefined : `${item.width}x${item.height}`;
  const { completed_at } = task;
  const has_files = task.status === 'succeeded' && completed_at !== null;
  return {
    id: task.id,
    object: 'video',
    model: task.model,
    status: statuses[task.status],
    progress: progress[task.status],
    created_at: seconds(task.created_at.getTime()),
    completed_at: has_files ? seconds(completed_at.getTime()) : null,
    expires_at: has_files ? seconds(completed_at.getTime() + keep_ms) : null,
    prompt: typeof request_input['prompt'] === 'string' ? request_input['prompt'] : null,
    seconds:
      item?.duration === undefined ? requestedSeconds(request_input) : String(Math.round(item.duration * 1000) / 1000),
    size: measured ?? requestedSize(request_input) ?? '',
    remixed_from_video_id: null,
    error: task.error_type === null ? null : { code: task.error_type, message: task.error_message },
  };
}

function seconds(time_ms: number): number {
  return Math.floor(time_ms / 1000);
}

function requestedSeconds(input: JsonObject): string {
  const { duration = input['seconds'] ?? '' } = input;
  return typeof duration === 'number' || typeof duration === 'string' ? String(duration).replace(/s$/, '') : '';
}
