process READMAP_INDEX {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    // The image of scripts/recipes/Dockerfile; for a GPU build it with an EXTRA, and add --gpus all to containerOptions.
    container "readmap:0.1.0"

    input:
    tuple val(meta), path(fasta)

    output:
    tuple val(meta), path("*.readmap"), emit: index
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    readmap index \\
        ${args} \\
        --threads ${task.cpus} \\
        --output ${prefix}.readmap \\
        ${fasta}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        readmap: \$(readmap --version | sed 's/^readmap //')
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}.readmap

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        readmap: \$(readmap --version | sed 's/^readmap //')
    END_VERSIONS
    """
}
