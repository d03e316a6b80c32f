/**
 * Frames in YUV 4:2:0 (BT.709, limited range), the form that the video encoder takes. The still
 * background is converted once; what moves is stamped onto a copy of it, which costs about a
 * millisecond a frame.
 */

export type Frame = { width: number; height: number; bytes: Uint8Array };

/** A one-coloured shape: how much of each pixel it covers, 0 to 255. */
export type Stamp = { width: number; height: number; cover: Uint8Array };

export type Colour = { y: number; u: number; v: number };

export const white: Colour = { y: 235, u: 128, v: 128 };

/** The YUV colour of red, green and blue from 0 to 255. */
export function colourOf(red: number, green: number, blue: number): Colour {
  return {
    y: 16 + 0.1826 * red + 0.6142 * green + 0.062 * blue,
    u: 128 - 0.1006 * red - 0.3386 * green + 0.4392 * blue,
    v: 128 + 0.4392 * red - 0.3989 * green - 0.0403 * blue,
  };
}

/** A frame from raw RGB bytes; width and height are even. */
export function frameFromRgb(rgb: Uint8Array, width: number, height: number): Frame {
  const pixels = width * height;
  const frame = { width, height, bytes: new Uint8Array((pixels * 3) / 2) };
  for (let y = 0; y < height; y += 2) {
    for (let x = 0; x < width; x += 2) {
      let [u, v] = [0, 0];
      for (const at of [y * width + x, y * width + x + 1, (y + 1) * width + x, (y + 1) * width + x + 1]) {
        const [red, green, blue] = [rgb[3 * at] ?? 0, rgb[3 * at + 1] ?? 0, rgb[3 * at + 2] ?? 0];
        frame.bytes[at] = 16.5 + 0.1826 * red + 0.6142 * green + 0.062 * blue;
        u += 128.5 - 0.1006 * red - 0.3386 * green + 0.4392 * blue;
        v += 128.5 + 0.4392 * red - 0.3989 * green - 0.0403 * blue;
      }
      const chroma = pixels + (y / 2) * (width / 2) + x / 2;
      frame.bytes[chroma] = u / 4;
      frame.bytes[chroma + pixels / 4] = v / 4;
    }
  }
  return frame;
}

/** Blends a stamp into the frame with its upper left corner at (left, top); what sticks out is cut off. */
export function stampOnto(frame: Frame, stamp: Stamp, left: number, top: number, colour: Colour): void {
  const { width, height, bytes } = frame;
  const pixels = width * height;
  const mix = (at: number, value: number, cover: number) => {
    const old = bytes[at] ?? 0;
    bytes[at] = Math.round(old + ((value - old) * cover) / 255);
  };
  for (let row = Math.max(0, -top); row < stamp.height && top + row < height; row++) {
    for (let column = Math.max(0, -left); column < stamp.width && left + column < width; column++) {
      const cover = stamp.cover[row * stamp.width + column] ?? 0;
      if (cover === 0) continue;
      const [x, y] = [left + column, top + row];
      mix(y * width + x, colour.y, cover);
      if ((x | y) & 1) continue; // one chroma sample per 2 × 2 pixels
      const chroma = pixels + (y / 2) * (width / 2) + x / 2;
      mix(chroma, colour.u, cover);
      mix(chroma + pixels / 4, colour.v, cover);
    }
  }
}

/** A filled circle with a soft edge of one pixel. */
export function discStamp(radius: number): Stamp {
  const side = 2 * Math.ceil(radius) + 2;
  const cover = new Uint8Array(side * side);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const inside = radius - Math.hypot(x + 0.5 - side / 2, y + 0.5 - side / 2) + 0.5;
      cover[y * side + x] = 255 * Math.max(0, Math.min(1, inside));
    }
  }
  return { width: side, height: side, cover };
}

/** A filled rectangle. */
export function barStamp(width: number, height: number): Stamp {
  return { width, height, cover: new Uint8Array(width * height).fill(255) };
}
