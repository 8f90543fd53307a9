/** A part of an address as text; one that was encoded wrong as it stands there. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A partition as people read it: the values that its group is split by, which its name has encoded. */
export function partitionName(partition: string): string {
  return partition.split(',').map(decoded).join(', ');
}
