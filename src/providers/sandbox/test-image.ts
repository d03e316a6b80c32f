/** The sandbox's image as SVG: a seeded landscape or pattern, a card with the prompt, a small mark. */
import { type Box, letterInBox, letterLine, lineWidth } from './lettering.ts';
import { type Chance, chanceFrom } from './seed.ts';

export type TestImage = {
  width: number;
  height: number;
  text: string;
  /** Decides everything but the text. */
  seed: string;
  /** Pixels at the top and at the bottom that the card leaves free. */
  free_above?: number;
  free_below?: number;
};

type Palette = { top: string; bottom: string; light: string; shades: readonly [string, string, string, string] };

const palettes: readonly [Palette, ...Palette[]] = [
  { top: '#1b2a6b', bottom: '#f7a072', light: '#ffe3a3', shades: ['#7b4b8f', '#573b7d', '#35295f', '#1a1638'] },
  { top: '#0b4f6c', bottom: '#9be7c4', light: '#fdf6c9', shades: ['#3c9d9b', '#23757b', '#14505c', '#0a2f3b'] },
  { top: '#5c1a4a', bottom: '#ff9a76', light: '#ffdf9e', shades: ['#b83b5e', '#8a2a56', '#5e1d47', '#331032'] },
  { top: '#2a1e5c', bottom: '#5fd3f3', light: '#f6f3ff', shades: ['#5a6fd8', '#4150b0', '#2b3584', '#171c4d'] },
  { top: '#1f4d3a', bottom: '#f2d388', light: '#fff6d6', shades: ['#8aa653', '#5c8148', '#365b3b', '#18352b'] },
  { top: '#7a2e1d', bottom: '#fbd786', light: '#fff1c9', shades: ['#d9753b', '#ab4f2b', '#773421', '#421c18'] },
  { top: '#10293f', bottom: '#d5a6e6', light: '#fde7ff', shades: ['#7d6bb3', '#574f93', '#37386d', '#1b2145'] },
  { top: '#31353d', bottom: '#b9c6d3', light: '#ffffff', shades: ['#7d8ea1', '#5b6b7e', '#3d4a5c', '#1f2835'] },
];

/** The whole image as an SVG document; letters are outlines, so no font is needed to draw it. */
export function drawTestImage(image: TestImage): string {
  const { width, height } = image;
  const chance = chanceFrom(image.seed);
  const palette = chance.pick(palettes);
  const scene = chance.pick([drawHills, drawHills, drawOrbits, drawRibbons]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<defs><linearGradient id="sky" x1="0" y1="0" x2="${at(chance.between(-0.4, 0.4) + 0.4)}" y2="1">`,
    `<stop offset="0" stop-color="${palette.top}"/><stop offset="1" stop-color="${palette.bottom}"/></linearGradient>`,
    `<radialGradient id="glow"><stop offset="0" stop-color="${palette.light}" stop-opacity=".85"/>`,
    `<stop offset="1" stop-color="${palette.light}" stop-opacity="0"/></radialGradient></defs>`,
    `<rect width="${width}" height="${height}" fill="url(#sky)"/>`,
    scene(width, height, palette, chance),
    drawCard(image),
    drawMark(width, height),
    '</svg>',
  ].join('');
}

type Scene = (width: number, height: number, palette: Palette, chance: Chance) => string;

const drawHills: Scene = (width, height, palette, chance) => {
  const unit = Math.min(width, height);
  const [sun_x, sun_y] = [width * chance.between(0.15, 0.85), height * chance.between(0.15, 0.42)];
  const radius = unit * chance.between(0.09, 0.15);
  const hills = palette.shades.map((shade, layer) => {
    const base = height * (0.5 + 0.13 * layer + chance.between(-0.03, 0.03));
    const swing = unit * chance.between(0.05, 0.11);
    const [turns, slide] = [chance.between(0.8, 2.2), chance.between(0, 6.3)];
    const points = Array.from({ length: 49 }, (_, i) => {
      const angle = (i / 48) * turns * 6.3 + slide;
      return `${at((width * i) / 48)} ${at(base - swing * (Math.sin(angle) + 0.35 * Math.sin(2.7 * angle)))}`;
    });
    return `<path d="M0 ${height}L${points.join('L')}L${width} ${height}Z" fill="${shade}"/>`;
  });
  return circle(sun_x, sun_y, radius * 3, 'url(#glow)') + circle(sun_x, sun_y, radius, palette.light) + hills.join('');
};

const drawOrbits: Scene = (width, height, palette, chance) => {
  const unit = Math.max(width, height);
  const shapes = [
    circle(width * chance.between(0.2, 0.8), height * chance.between(0.2, 0.8), unit * 0.6, 'url(#glow)'),
  ];
  for (let i = 0; i < 14; i++) {
    const [x, y] = [width * chance.between(-0.05, 1.05), height * chance.between(-0.05, 1.05)];
    const radius = unit * chance.between(0.04, 0.22);
    const colour = chance.pick([...palette.shades, palette.light, palette.light]);
    shapes.push(circle(x, y, radius, colour, chance.between(0.18, 0.5)));
    const ring = `fill="none" stroke="${palette.light}" stroke-opacity=".5" stroke-width="${at(unit / 300)}"`;
    if (i % 3 === 0) shapes.push(`<circle cx="${at(x)}" cy="${at(y)}" r="${at(radius * 1.25)}" ${ring}/>`);
  }
  return shapes.join('');
};

const drawRibbons: Scene = (width, height, palette, chance) => {
  const shapes = [
    circle(width * chance.between(0.1, 0.9), height * chance.between(0, 0.5), width * 0.45, 'url(#glow)'),
  ];
  for (let i = 0; i < 9; i++) {
    const [left, right] = [height * chance.between(-0.1, 1.1), height * chance.between(-0.1, 1.1)];
    const [high, low] = [height * chance.between(-0.4, 1.4), height * chance.between(-0.4, 1.4)];
    const thick = height * chance.between(0.04, 0.14);
    const [a, b, w] = [at(width * 0.33), at(width * 0.66), at(width)];
    const there = `M0 ${at(left)}C${a} ${at(high)} ${b} ${at(low)} ${w} ${at(right)}`;
    const back = `L${w} ${at(right + thick)}C${b} ${at(low + thick)} ${a} ${at(high + thick)} 0 ${at(left + thick)}Z`;
    const colour = chance.pick([...palette.shades, palette.light]);
    shapes.push(`<path d="${there}${back}" fill="${colour}" fill-opacity="${at(chance.between(0.35, 0.75))}"/>`);
  }
  return shapes.join('');
};

/** The prompt in white on a dark card: white stays above 5:1 in contrast whatever lies below. */
function drawCard({ width, height, text, free_above = 0, free_below = 0 }: TestImage): string {
  if (text === '') return '';
  const free_height = height - free_above - free_below;
  const unit = Math.min(width, free_height);
  const margin = unit * 0.12;
  const text_box: Box = {
    x: margin,
    y: free_above + margin,
    width: width - 2 * margin,
    height: free_height - 2 * margin,
  };
  const lettering = letterInBox(text, text_box, { max: unit * 0.14, min: Math.max(4, Math.min(18, unit * 0.05)) });
  const pad = Math.min(lettering.size * 0.7, margin * 0.8);
  const { box } = lettering;
  const card = [
    `x="${at(box.x - pad)}" y="${at(box.y - pad * 0.8)}" rx="${at(pad * 0.6)}"`,
    `width="${at(box.width + 2 * pad)}" height="${at(box.height + 1.6 * pad)}"`,
  ].join(' ');
  return `<rect ${card} fill="#0a0c18" fill-opacity=".66"/><path d="${lettering.path}" fill="#fff"/>`;
}

/** Says which provider made the image; left out where it would be a smudge. */
function drawMark(width: number, height: number): string {
  const unit = Math.min(width, height);
  if (unit < 128) return '';
  const size = Math.max(9, unit * 0.022);
  const [x, y] = [width - lineWidth('sandbox') * size - size, height - size];
  const path = letterLine('sandbox', x, y, size);
  return `<path d="${path}" fill="#fff" stroke="#000" stroke-opacity=".35" stroke-width="${at(size / 6)}" paint-order="stroke"/>`;
}

function circle(x: number, y: number, radius: number, fill: string, opacity = 1): string {
  return `<circle cx="${at(x)}" cy="${at(y)}" r="${at(radius)}" fill="${fill}" fill-opacity="${at(opacity)}"/>`;
}

function at(value: number): string {
  return String(Math.round(value * 100) / 100);
}
