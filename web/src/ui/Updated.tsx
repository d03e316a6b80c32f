import { Alert, Button, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { loadAnew } from '../updated.ts';

/**
 * Stands in the place of a page whose file is gone. Loads the new version by itself, or leaves it to a button if that
 * did not help.
 */
export function Updated() {
  const [is_loading, setIsLoading] = useState(true);
  useEffect(() => setIsLoading(loadAnew()), []);
  return (
    <Alert role="alert" variant="light" title="Medley was updated">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {is_loading
            ? 'The new version is being loaded.'
            : 'This page could not be loaded. The service may be restarting.'}
        </Text>
        {!is_loading && (
          <Button size="xs" variant="default" onClick={() => window.location.reload()}>
            Load it again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
