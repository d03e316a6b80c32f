/** Images inside a terminal, by the protocols of kitty and of iTerm2. The bytes of others reach it as base64 alone. */

import { keepImageThreads } from '../../lib/image-threads.ts';

export type ImageProtocol = 'kitty' | 'iterm2';

const shown_px_max = 800;
const input_px_max = 50_000_000;

/** Bytes of base64 in one escape sequence (https://sw.kovidgoyal.net/kitty/graphics-protocol/, read 2026-11-28). */
const kitty_chunk = 4_096;

/** Returns the image as a terminal takes it; undefined if it is none that can be read. */
export async function imageForTerminal(bytes: Uint8Array, protocol: ImageProtocol): Promise<string | undefined> {
  keepImageThreads();
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  try {
    // Made anew: terminals read PNG, and a file of a stranger is decoded here, within limits, and not there.
    const png = await sharp(bytes, { limitInputPixels: input_px_max })
      .resize({ width: shown_px_max, height: shown_px_max, fit: 'inside', withoutEnlargement: true })
      .png()
      .toBuffer();
    return protocol === 'kitty' ? kittySequence(png) : iterm2Sequence(png);
  } catch {
    return undefined;
  }
}

function kittySequence(png: Buffer): string {
  const text = png.toString('base64');
  const chunks = Array.from({ length: Math.ceil(text.length / kitty_chunk) }, (_, index) =>
    text.slice(index * kitty_chunk, (index + 1) * kitty_chunk),
  );
  const sequences = chunks.map((chunk, index) => {
    const control = index === 0 ? 'a=T,f=100,' : '';
    return `\u001B_G${control}m=${index === chunks.length - 1 ? 0 : 1};${chunk}\u001B\\`;
  });
  return `${sequences.join('')}\n`;
}

/** https://iterm2.com/documentation-images.html, read 2026-11-28. */
function iterm2Sequence(png: Buffer): string {
  return `\u001B]1337;File=inline=1;size=${png.length};preserveAspectRatio=1:${png.toString('base64')}\u0007\n`;
}
