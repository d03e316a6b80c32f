import { Button, Container } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Empty } from '../ui/states.tsx';

export function NotFound() {
  return (
    <Container size="sm" py="xl" component="main">
      <h1 style={{ position: 'absolute', left: -9999 }}>Not found</h1>
      <Empty
        title="Page not found"
        action={
          <Button component={Link} to="/">
            Home
          </Button>
        }
      >
        The address may be mistyped, or belong to another account.
      </Empty>
    </Container>
  );
}
