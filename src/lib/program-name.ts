/** True in the published package, whose modules are JavaScript; false in the repository, where Node reads the sources. */
export const is_published = !import.meta.url.endsWith('.ts');

/** Words by which an operator calls the commands, for messages that name one. */
export const program_name = is_published ? 'medley' : 'npm run -s medley --';
