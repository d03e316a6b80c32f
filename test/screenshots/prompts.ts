/** Prompts of the people in the screenshots. */
export const scenes = [
  'A red bicycle, leaning on a wall at dusk',
  'A lighthouse in a storm, oil on canvas',
  'Product shot of a ceramic teapot on linen, soft window light from the left, shallow depth of field, 85 mm',
  'Morning fog over a pine forest',
  'Isometric cutaway of a small bakery',
  'Zażółć gęślą jaźń, hand-lettered',
  'A paper boat on a puddle',
  'Two foxes in the snow, woodcut',
  'An empty tram at night',
  'Poster for a summer concert by the lake, bold shapes, three colours, room for a headline at the top',
  'A bowl of ripe apricots',
  'A quiet library with a cat on the ladder',
] as const;

export const video_prompts = [
  'Waves on a beach',
  'Clouds above a valley, time lapse',
  'A train crosses a viaduct',
] as const;

export const melodies = ['A lullaby in three-four time', 'A short fanfare'] as const;

export const questions = [
  'Write a product description for a ceramic teapot.',
  'Summarise the last release in three sentences.',
  'Which of these headlines is the clearest?',
  'Translate the menu into Polish.',
  'Explain this stack trace.',
] as const;
