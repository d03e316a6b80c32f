import type { Json, JsonObject } from '../../catalog/model.ts';
import type { ImageToolHalf } from '../codec.ts';
import type { MadeImage } from '../conversation.ts';
import { isObject, readCount } from '../fields.ts';
import { withOwnFunction } from './own-tool.ts';

/** Images in the responses style: the tool `image_generation`, and items with the bytes. */

function isImageTool(tool: Json): boolean {
  return isObject(tool) && tool['type'] === 'image_generation';
}

/** Parameters of a new image, in the words of `/v1/images/generations`. */
const parameter_names = ['size', 'quality', 'background', 'output_format', 'output_compression'] as const;

const description =
  'Makes an image and shows it to the user. Describe all that is to be seen: nothing else of the conversation is known there.';

const parameters: JsonObject = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the image shows, and how.' } },
  required: ['prompt'],
  additionalProperties: false,
};

/** Reads and replaces the tool of images. */
export const responses_images: ImageToolHalf = {
  read: (body) => {
    const tool = Array.isArray(body['tools']) ? body['tools'].find(isImageTool) : undefined;
    if (!isObject(tool)) return undefined;
    const named = parameter_names.flatMap((name) => {
      const value = tool[name];
      return value === undefined || value === null || value === 'auto' ? [] : [[name, value] as const];
    });
    return {
      images_max: readCount(body, 'max_tool_calls', 'max_tool_calls', 1),
      parameters: Object.fromEntries(named),
    };
  },
  withFunction: (body) =>
    withOwnFunction(body, isImageTool, (others) => {
      const is_taken = JSON.stringify(others).includes('"make_image"');
      return { name: is_taken ? 'make_image_of_service' : 'make_image', description, parameters };
    }),
};

/** Returns the item of an image; `status`: how far it is. */
export function imageItem(id: string, image: Omit<MadeImage, 'id'>, status?: string): JsonObject {
  const { prompt, base64, format, size } = image;
  return {
    id,
    type: 'image_generation_call',
    status: status ?? (base64 === undefined ? 'failed' : 'completed'),
    result: base64 ?? null,
    revised_prompt: prompt,
    ...(format !== undefined && { output_format: format }),
    ...(size !== undefined && { size }),
  };
}
