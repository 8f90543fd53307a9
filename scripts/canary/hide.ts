/** Removes secrets from a text, because a response of another server may repeat one. */
export function hide(text: string, secrets: readonly (string | null)[]): string {
  return secrets.reduce<string>(
    (hidden, secret) => (secret === null ? hidden : hidden.replaceAll(secret, '***')),
    text,
  );
}
