import sharp from 'sharp';
import type { ImageOrder } from './order.ts';
import { drawPicture } from './picture.ts';

/** The PNG files of an order. Same order, same bytes; each of `n` pictures is another one. */
export function makeImages(order: ImageOrder): Promise<Buffer[]> {
  const pictures = Array.from({ length: order.n }, (_, i) => {
    const seed = JSON.stringify([order.kind, order.text, order.seed, order.width, order.height, i]);
    return drawPicture({ width: order.width, height: order.height, text: order.text, seed });
  });
  return Promise.all(
    pictures.map((svg) => sharp(Buffer.from(svg)).removeAlpha().png({ compressionLevel: 6 }).toBuffer()),
  );
}
