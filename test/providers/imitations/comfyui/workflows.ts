import type { JsonObject } from '../../../../src/catalog/model.ts';

/** Workflows in the API format, as the editor exports them. */

const titled = (title: string, class_type: string, inputs: JsonObject): JsonObject => ({
  inputs,
  class_type,
  _meta: { title },
});

const sampler = (seed: number, latent: string): JsonObject =>
  titled('KSampler', 'KSampler', {
    seed,
    steps: 20,
    cfg: 8,
    sampler_name: 'euler',
    model: ['4', 0],
    positive: ['6', 0],
    negative: ['7', 0],
    latent_image: [latent, 0],
  });

/** A text becomes an image. */
export function textToImage(): JsonObject {
  return {
    '3': sampler(156_680_208_700_286, '5'),
    '4': titled('Load Checkpoint', 'CheckpointLoaderSimple', { ckpt_name: 'sd_xl_base_1.0.safetensors' }),
    '5': titled('Empty Latent Image', 'EmptyLatentImage', { width: 512, height: 512, batch_size: 1 }),
    '6': titled('Positive', 'CLIPTextEncode', { text: 'beautiful scenery', clip: ['4', 1] }),
    '7': titled('Negative', 'CLIPTextEncode', { text: 'text, watermark', clip: ['4', 1] }),
    '8': titled('VAE Decode', 'VAEDecode', { samples: ['3', 0], vae: ['4', 2] }),
    '9': titled('Save Image', 'SaveImage', { filename_prefix: 'ComfyUI', images: ['8', 0] }),
  };
}

/** A part of an image, by a mask, is made anew. */
export function inpaint(): JsonObject {
  const { '5': _, ...others } = textToImage();
  return {
    ...others,
    '3': sampler(1, '12'),
    '10': titled('Picture', 'LoadImage', { image: 'example.png' }),
    '11': titled('Mask', 'LoadImageMask', { image: 'example.png', channel: 'alpha' }),
    '12': titled('Inpaint', 'VAEEncodeForInpaint', { pixels: ['10', 0], mask: ['11', 0], vae: ['4', 2] }),
  };
}

/** A voice becomes another. */
export function changedVoice(): JsonObject {
  return {
    '1': titled('Voice', 'LoadAudio', { audio: 'example.wav' }),
    '2': titled('Save Audio', 'SaveAudio', { audio: ['1', 0], filename_prefix: 'audio/voice' }),
  };
}

/** A text becomes a video; the first frame is shown as a preview. */
export function textToVideo(): JsonObject {
  return {
    ...textToImage(),
    '9': titled('Preview', 'PreviewImage', { images: ['8', 0] }),
    '20': titled('Video Combine', 'VHS_VideoCombine', {
      frame_rate: 16,
      filename_prefix: 'video/Wan',
      images: ['8', 0],
    }),
  };
}
