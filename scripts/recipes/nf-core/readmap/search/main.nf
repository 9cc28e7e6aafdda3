process READMAP_SEARCH {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    // The image of scripts/recipes/Dockerfile; for a GPU build it with an EXTRA, and add --gpus all to containerOptions.
    container "readmap:0.1.0"

    input:
    tuple val(meta), path(reads)
    tuple val(meta2), path(index)
    val sort

    output:
    tuple val(meta), path("*.sam"), emit: sam, optional: true
    tuple val(meta), path("*.bam"), emit: bam, optional: true
    tuple val(meta), path("*.cram"), emit: cram, optional: true
    tuple val(meta), path("*.bai"), emit: bai, optional: true
    tuple val(meta), path("*.csi"), emit: csi, optional: true
    tuple val(meta), path("*.crai"), emit: crai, optional: true
    tuple val(meta), path("*.metrics.txt"), emit: metrics, optional: true
    tuple val(meta), path("*.html"), emit: report, optional: true
    tuple val(meta), path("*.json"), emit: json
    path "versions.yml", emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    // bam, cram or sam
    def suffix = task.ext.suffix ?: 'bam'
    def marked = args.contains('--markdup') || args.contains('--remove-duplicates')
    def sorting = sort ? "--sort --report ${prefix}.html" : ''
    def metrics = marked ? "--metrics ${prefix}.metrics.txt" : ''
    """
    readmap search \\
        ${args} \\
        ${sorting} \\
        ${metrics} \\
        --threads ${task.cpus} \\
        --index ${index} \\
        --json ${prefix}.json \\
        --output ${prefix}.${suffix} \\
        ${reads}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        readmap: \$(readmap --version | sed 's/^readmap //')
    END_VERSIONS
    """

    stub:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def suffix = task.ext.suffix ?: 'bam'
    def marked = args.contains('--markdup') || args.contains('--remove-duplicates')
    def ending = suffix == 'cram' ? 'crai' : 'bai'
    def sorted = sort ? "touch ${prefix}.${suffix}.${ending} ${prefix}.html" : ''
    def metrics = marked ? "touch ${prefix}.metrics.txt" : ''
    """
    touch ${prefix}.${suffix} ${prefix}.json
    ${sorted}
    ${metrics}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        readmap: \$(readmap --version | sed 's/^readmap //')
    END_VERSIONS
    """
}
