import { expect, it } from 'vitest';
import { requestedSize } from '../../../src/styles/media-parameters/size.ts';

it.each([
  [{ size: '1280x720' }, '1280x720'],
  [{ width: 300, height: 200 }, '300x200'],
  [{ aspect_ratio: '16:9', resolution: '720p' }, '1280x720'],
  [{ aspect_ratio: '9:16', resolution: '480p' }, '480x854'],
  [{ aspect_ratio: '1:1', resolution: '1080P' }, '1080x1080'],
  [{ aspect_ratio: 'adaptive', resolution: '480p' }, undefined],
  [{ aspect_ratio: '16:9', resolution: '4k' }, undefined],
  [{ aspect_ratio: '16:9' }, undefined],
  [{ prompt: 'x' }, undefined],
])('the size that %j asks for is %s', (input, size) => {
  expect(requestedSize(input)).toBe(size);
});
