/** A map that evicts the least recently used entry when it is full, for keys that come from outside. */
export function createLruMap<Key, Value>(most: number, onForget: (value: Value) => void = () => {}) {
  const map = new Map<Key, Value>()
  return {
    get(key: Key): Value | undefined {
      const value = map.get(key)
      // While there is plenty of room, the order of use does not matter.
      if (value !== undefined && map.size > most / 2) {
        map.delete(key)
        map.set(key, value)
      }
      return value
    },
    set(key: Key, value: Value) {
      map.delete(key)
      map.set(key, value)
      for (const [oldest, forgotten] of map) {
        if (map.size <= most) return
        map.delete(oldest)
        onForget(forgotten)
      }
    },
    values: () => [...map.values()],
  }
}
