import sharp from 'sharp';
import type { ImageRequest } from './media-request.ts';
import { drawTestImage } from './test-image.ts';

// One thread for each image: as fast for those of the sandbox, and keepImageThreads counts on it.
sharp.concurrency(1);

/** The PNG files of an order. Same order, same bytes; each of `n` images is another one. */
export function makeImages(request: ImageRequest): Promise<Buffer[]> {
  const images = Array.from({ length: request.n }, (_, i) => {
    const seed = JSON.stringify([request.kind, request.text, request.seed, request.width, request.height, i]);
    return drawTestImage({ width: request.width, height: request.height, text: request.text, seed });
  });
  return Promise.all(
    images.map((svg) => sharp(Buffer.from(svg)).removeAlpha().png({ compressionLevel: 6 }).toBuffer()),
  );
}
