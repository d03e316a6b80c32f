import { anthropic } from './anthropic.ts';
import { bfl } from './bfl.ts';
import { elevenlabs } from './elevenlabs.ts';
import { fal } from './fal.ts';
import { gemini } from './gemini.ts';
import { http_queue } from './http-queue.ts';
import { kling } from './kling.ts';
import { luma } from './luma.ts';
import { minimax } from './minimax.ts';
import { openai } from './openai.ts';
import type { Adapter } from './provider.ts';
import { replicate } from './replicate.ts';
import { runway } from './runway.ts';
import { sandbox } from './sandbox.ts';

/** Every adapter of the service by the name that `medley.yaml` gives it. */
export const adapters: Record<string, Adapter> = {
  sandbox,
  openai,
  anthropic,
  gemini,
  replicate,
  fal,
  bfl,
  runway,
  luma,
  kling,
  minimax,
  elevenlabs,
  'http-queue': http_queue,
};
