/** Decodes a part of an address. Returns it unchanged if its encoding is invalid. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Readable name of a partition: the values by which its group is split, which the name encodes. */
export function partitionName(partition: string): string {
  return partition.split(',').map(decoded).join(', ');
}
